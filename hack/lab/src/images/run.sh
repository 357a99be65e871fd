# shellcheck shell=sh
# Runs the script $3 in the root filesystem $1 with all changes kept apart in $2/upper.
# $4 keeps downloaded packages for the next time; further arguments are seen in /run/inputs.
base=$1 work=$2 script=$3 downloads=$4
shift 4
mkdir -p "$work/upper" "$work/work" "$work/root"
root=$work/root
mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/work" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mkdir -p "$root/run/downloads" "$root/run/inputs"
mount --bind "$downloads" "$root/run/downloads"
for input in "$@"; do
    inside=$root/run/inputs/$(basename "$input")
    if [ -d "$input" ]; then mkdir "$inside"; else : > "$inside"; fi
    mount --bind "$input" "$inside"
done
# Packages come over the network that this machine uses; the image keeps its own file.
cp -L /etc/resolv.conf "$root/run/resolv.conf"
[ -e "$root/etc/resolv.conf" ] || : > "$root/etc/resolv.conf"
mount --bind "$root/run/resolv.conf" "$root/etc/resolv.conf"
chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LC_ALL=C.UTF-8 HOME=/root DEBIAN_FRONTEND=noninteractive sh -euxc "$script"
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/cache/debconf/* "$root"/var/cache/ldconfig/* \
    "$root"/etc/*- "$root"/var/lib/dpkg/*-old \
    "$root"/var/log/*.log "$root"/var/log/apt/* "$root"/usr/share/doc/* "$root"/usr/share/man/* \
    "$root"/usr/share/info/* "$root"/usr/share/locale/* "$root"/root/.cache "$root"/var/tmp/*
