#!/bin/sh
# Installs packages (the arguments) from the bundle's repository for this machine, and from nowhere else: apt gets lists,
# sources and keys of its own, which go afterwards. Nothing of Python is needed. In the environment: PACKAGES_URL, the
# bundle's; PACKAGES_KEY, the public key in armor; PACKAGES_CA, PACKAGES_USERNAME and PACKAGES_PASSWORD, or nothing.
set -eu
umask 022
if ! command -v apt-get >/dev/null; then
    echo "spec.artifacts.osPackages brings packages for apt alone, and this machine has none: install $* by hand, or take the" \
        "field back, so that packages come from the machine's own sources" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive APT_LISTCHANGES_FRONTEND=none NEEDRESTART_MODE=l
# shellcheck source=/dev/null
. /etc/os-release
os="$ID${VERSION_ID:-}"
arch=$(dpkg --print-architecture)
repository="${PACKAGES_URL%/}/os/$os/$arch"

directory=$(mktemp -d /run/clusterwright-packages.XXXXXX)
trap 'rm -rf "$directory"' EXIT
# apt downloads as another user.
chmod 755 "$directory"
mkdir "$directory/lists" "$directory/archives"
printf '%s\n' "$PACKAGES_KEY" >"$directory/packages.asc"
printf 'deb [signed-by=%s/packages.asc] %s ./\n' "$directory" "$repository" >"$directory/sources.list"
: >"$directory/auth.conf"
chmod 600 "$directory/auth.conf"
if [ -n "${PACKAGES_USERNAME:-}" ]; then
    case "$PACKAGES_USERNAME$PACKAGES_PASSWORD" in
        *[[:space:]]*) echo "apt takes no user name and no password with a space in it: $repository" >&2 && exit 1 ;;
    esac
    printf 'machine %s login %s password %s\n' "${repository#*://}" "$PACKAGES_USERNAME" "$PACKAGES_PASSWORD" >"$directory/auth.conf"
fi
cat >"$directory/apt.conf" <<END
Dir::Etc::sourcelist "$directory/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::netrc "$directory/auth.conf";
Dir::Etc::netrcparts "/dev/null";
Dir::State::lists "$directory/lists";
Dir::Cache::archives "$directory/archives";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Acquire::Languages "none";
Acquire::Retries "3";
DPkg::Lock::Timeout "120";
END
if [ -n "${PACKAGES_CA:-}" ]; then
    printf '%s\n' "$PACKAGES_CA" >"$directory/ca.crt"
    echo "Acquire::https::CaInfo \"$directory/ca.crt\";" >>"$directory/apt.conf"
fi

apt() { apt-get --config-file="$directory/apt.conf" --quiet --quiet "$@" </dev/null >&2; }
if ! apt --error-on=any update; then
    echo "$repository could not be read: make it with \`wright bundle add packages $os --arch $arch\`, and sign it with" \
        "the key of spec.artifacts.osPackages.signedBy; or leave that field out" >&2
    exit 1
fi
apt --yes --no-install-recommends install "$@"
