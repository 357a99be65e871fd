# shellcheck shell=sh
# Makes a minimal Debian in $1 of release $2 with the packages $3 (comma-separated), runs the script $4 in it.
# $5 keeps downloaded packages for the next time. $6 is another architecture than this machine's, if it is for one.
root=$1 release=$2 packages=$3 script=$4 downloads=$5 architecture=$6
debootstrap --variant=minbase ${architecture:+--arch="$architecture"} --cache-dir="$downloads" ${packages:+--include="$packages"} "$release" "$root"
chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 sh -euxc "$script"
# Only what runs stays: no package archives and lists, no documentation, no translations.
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/*.log "$root"/var/log/apt/* \
    "$root"/usr/share/doc/* "$root"/usr/share/man/* "$root"/usr/share/info/* "$root"/usr/share/locale/* \
    "$root"/usr/share/lintian "$root"/tmp/* "$root"/var/tmp/*
