# shellcheck shell=sh
# What the operator's image has beside a minimal Debian.
apt="apt-get --yes --quiet --option Dir::Cache::Archives=/run/downloads --option APT::Sandbox::User=root --option APT::Keep-Downloaded-Packages=true"
$apt update
$apt install --no-install-recommends ca-certificates
echo 'operator:x:65532:65532:operator:/work:/usr/sbin/nologin' >> /etc/passwd
echo 'operator:x:65532:' >> /etc/group
install -d -o 65532 -g 65532 -m 755 /work
