# shellcheck shell=sh
# Runs inside the new root filesystem of machines.

# A container gets its v1 cgroups and /proc/sys read-only; a kubelet must write both.
cat > /etc/systemd/system/writable-kernel.service <<'UNIT'
[Unit]
Description=Make cgroups and sysctls writable
DefaultDependencies=no
Before=sysinit.target systemd-sysctl.service
ConditionVirtualization=container

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/writable-kernel

[Install]
WantedBy=sysinit.target
UNIT
cat > /usr/local/sbin/writable-kernel <<'SCRIPT'
#!/bin/sh
# Each v1 hierarchy is a mount of its own; on v2 there is one.
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/*; do
    if mountpoint -q "$hierarchy"; then
        mount -o remount,bind,rw "$hierarchy"
    fi
done
mount -o remount,rw /proc/sys
SCRIPT
chmod 755 /usr/local/sbin/writable-kernel

# Passwords are open for root as well: tests use them beside keys. Nobody has one until somebody sets it.
cat > /etc/ssh/sshd_config.d/lab.conf <<'CONF'
PermitRootLogin yes
PasswordAuthentication yes
UseDNS no
PrintMotd no
CONF
# Each machine has keys and an identity of its own.
rm -f /etc/ssh/ssh_host_*
: > /etc/machine-id
rm -f /var/lib/dbus/machine-id

# CoreDNS wants a server to forward to, whether or not it answers.
rm -f /etc/resolv.conf
echo 'nameserver 172.30.0.1' > /etc/resolv.conf
echo localhost > /etc/hostname

systemctl enable writable-kernel.service systemd-networkd.service ssh.service
# Their packages are there for clusters that want them; nobody has asked yet.
systemctl disable keepalived.service haproxy.service
# Nothing wakes up by itself on an idle machine.
systemctl mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
    console-getty.service getty.target e2scrub_reap.service
