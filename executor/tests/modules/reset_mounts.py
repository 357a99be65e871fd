"""A reset deletes nothing that is mounted below what it empties, nor behind a link that nobody recorded."""

import os
import subprocess

from machine_world import enter, play, program, sh, write

enter()

from ansible_collections.clusterwright.cluster.plugins.modules import prepare, reset  # noqa: E402

VOLUME = "/data/share"
POINT = "/var/lib/kubelet/pods/1/volumes/kubernetes.io~nfs/share"
KEPT = f"{VOLUME}/precious"


def cluster() -> None:
    """What a node has on its disk."""
    write("/etc/clusterwright/cluster.json", '{"identity": "a", "name": "a"}')
    write("/etc/kubernetes/kubelet.conf")
    write("/var/lib/kubelet/config.yaml")
    write("/var/lib/etcd/member/wal/0.wal")


def reset_all() -> tuple:
    """(what is reported as left, the failure)."""
    report, failure = play(reset)
    return (report if failure else report["clusterwright"])["leftovers"], failure


class Busy:
    """A process at work in a directory: its file system cannot be unmounted."""

    def __init__(self, place: str) -> None:
        self.process = subprocess.Popen(("sleep", "600"), cwd=place)

    def __enter__(self):
        return self

    def __exit__(self, *_failure):
        self.process.kill()
        self.process.wait()


def prepared() -> None:
    configured = {"configured_sysctl": {}, "configured_modules": [], "configured_authorities": []}
    configured.update(machine_settings={}, user="root", login_keys=[])
    cluster = {"identity": "a", "name": "a"}
    _result, failure = play(prepare, cluster=cluster, sysctl={}, modules=[], swap_off=False, hosts=[], leave_routes=False, **configured)
    assert failure is None, failure.message


def a_volume_whose_unmount_failed_keeps_its_contents() -> None:
    cluster()
    write(KEPT)
    os.makedirs(POINT)
    sh("mount", "--bind", VOLUME, POINT)
    with Busy(POINT):
        left, failure = reset_all()
        assert os.path.exists(KEPT), "the volume's contents are gone"
        assert failure and failure.reason == "NotClean", failure
        assert any(POINT in text for text in left), left
        assert os.path.exists("/var/lib/kubelet/config.yaml"), "nothing is deleted while a mount is left below it"
        assert os.path.exists("/etc/clusterwright/cluster.json"), "what the machine remembers goes last"
        assert not os.path.exists("/var/lib/etcd/member"), "what has no mount below it is emptied"
    left, failure = reset_all()
    assert failure is None and left == [], failure and failure.message
    assert os.path.exists(KEPT) and not os.path.exists("/var/lib/kubelet")


def a_volume_that_hangs_keeps_its_contents() -> None:
    cluster()
    os.makedirs(POINT)
    sh("mount", "--bind", VOLUME, POINT)
    umount = program("umount", "echo 'umount: target is busy' >&2; exit 32")
    left, failure = reset_all()
    assert os.path.exists(KEPT), "the volume's contents are gone"
    assert failure and failure.reason == "NotClean", failure
    assert left[0].startswith(f"mount {POINT} "), left
    os.unlink(umount)
    left, failure = reset_all()
    assert failure is None and left == [], failure and failure.message


def a_volume_of_a_node_is_unmounted_first() -> None:
    cluster()
    os.makedirs(POINT)
    sh("mount", "--bind", VOLUME, POINT)
    # Once more on top, as the kubelet does for a sub-path.
    sh("mount", "-t", "tmpfs", "tmpfs", POINT)
    left, failure = reset_all()
    assert failure is None and left == [], failure and failure.message
    assert os.path.exists(KEPT)


def a_root_that_is_a_mount_point_is_emptied_on_its_own_device() -> None:
    os.makedirs("/data/kubelet-disk")
    os.makedirs("/var/lib/kubelet")
    sh("mount", "--bind", "/data/kubelet-disk", "/var/lib/kubelet")
    cluster()
    write("/var/lib/kubelet/pki/kubelet.crt")
    left, failure = reset_all()
    assert failure is None and left == [], failure and failure.message
    assert os.listdir("/data/kubelet-disk") == [] and " /var/lib/kubelet " in sh("cat", "/proc/self/mounts")
    sh("umount", "/var/lib/kubelet")


def a_link_of_before_the_install_is_followed() -> None:
    os.makedirs("/data/kubelet", exist_ok=True)
    os.rmdir("/var/lib/kubelet")
    os.symlink("/data/kubelet", "/var/lib/kubelet")
    prepared()
    cluster()
    os.makedirs(POINT)
    sh("mount", "--bind", VOLUME, POINT)
    left, failure = reset_all()
    assert failure is None and left == [], failure and failure.message
    assert os.path.exists(KEPT), "below the link a volume is mounted, by its real path"
    assert os.listdir("/data/kubelet") == [] and os.path.islink("/var/lib/kubelet")


def a_link_that_points_elsewhere_since_the_install_is_not_followed() -> None:
    prepared()
    cluster()
    write("/data/other/precious")
    os.unlink("/var/lib/kubelet")
    os.symlink("/data/other", "/var/lib/kubelet")
    # A step that is played again does not make it right.
    prepared()
    left, failure = reset_all()
    assert os.path.exists("/data/other/precious"), "the reset followed a link that was not there at install"
    assert failure and failure.reason == "NotClean", failure
    assert any("/var/lib/kubelet" in text and "/data/other" in text for text in left), left
    os.unlink("/var/lib/kubelet")
    assert reset_all()[1] is None


def no_link_inside_is_followed_and_no_depth_is_too_much() -> None:
    cluster()
    os.symlink(VOLUME, "/var/lib/kubelet/link")
    at = os.open("/var/lib/kubelet", os.O_RDONLY)
    for _level in range(3000):
        os.mkdir("d", dir_fd=at)
        inner = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
    left, failure = reset_all()
    assert failure is None and left == [], failure and failure.message
    assert os.path.exists(KEPT)


def loops_of_block_volumes_are_detached() -> None:
    cluster()
    write("/var/lib/kubelet/plugins/volume.img", "x" * 65536)
    device = sh("losetup", "--find", "--show", "/var/lib/kubelet/plugins/volume.img", ok=False).strip()
    if not device:
        print("no loop devices here")
        return
    try:
        left, failure = reset_all()
        assert failure is None and left == [], failure and failure.message
        assert sh("losetup", "--list", device, ok=False).count("volume.img") == 0
    finally:
        sh("losetup", "--detach", device, ok=False)


a_volume_whose_unmount_failed_keeps_its_contents()
a_volume_that_hangs_keeps_its_contents()
a_volume_of_a_node_is_unmounted_first()
a_root_that_is_a_mount_point_is_emptied_on_its_own_device()
a_link_of_before_the_install_is_followed()
a_link_that_points_elsewhere_since_the_install_is_not_followed()
no_link_inside_is_followed_and_no_depth_is_too_much()
loops_of_block_volumes_are_detached()
