# shellcheck shell=sh
# What the executor's image has beside a minimal Debian: Python, Ansible with all it depends on, ssh.
apt="apt-get --yes --quiet --option Dir::Cache::Archives=/run/downloads --option APT::Sandbox::User=root --option APT::Keep-Downloaded-Packages=true"
$apt update
$apt install --no-install-recommends ca-certificates openssh-client python3 sshpass
$apt install --no-install-recommends python3-venv
python3 -m venv /opt/ansible
/opt/ansible/bin/pip install --quiet --no-cache-dir --disable-pip-version-check --no-index --find-links /run/inputs/wheels \
    --require-hashes --requirement /run/inputs/requirements.txt
# Installing is over: what it took goes, and Ansible's own test tools.
/opt/ansible/bin/python -m pip uninstall --quiet --yes pip setuptools
rm -rf /opt/ansible/lib/python3.11/site-packages/ansible_test
$apt purge --auto-remove python3-venv python3.11-venv python3-pip-whl python3-setuptools-whl
# The root filesystem is read-only where this runs: compiled now or at every start. Valid by itself, not by the times of
# files, which a layer does not keep.
python3 -m compileall -q -f --invalidation-mode unchecked-hash /opt/ansible /usr/lib/python3 /usr/lib/python3.11 || true
for program in /opt/ansible/bin/ansible*; do ln -s "$program" /usr/local/bin/; done
echo 'executor:x:65532:65532:executor:/work:/usr/sbin/nologin' >> /etc/passwd
echo 'executor:x:65532:' >> /etc/group
install -d -o 65532 -g 65532 -m 755 /work
