# Ends every certificate of a control plane that a renewal renews: each is signed again, for the same key and names, to
# have ended a week ago. The authorities' pairs are in the folder AUTHORITIES.
set -euo pipefail
authorities=$AUTHORITIES
trap 'rm -rf "$authorities"' EXIT
cat >"$authorities/ca.cnf" <<END
[ca]
default_ca = again
[again]
new_certs_dir = $authorities
database = $authorities/index
default_md = sha256
policy = any
copy_extensions = copyall
unique_subject = no
rand_serial = yes
[any]
commonName = optional
organizationName = optional
END

# again CERTIFICATE KEY AUTHORITY
again() {
    openssl x509 -x509toreq -copy_extensions copyall -in "$1" -signkey "$2" -out "$authorities/request" 2>/dev/null
    : >"$authorities/index"
    openssl ca -batch -notext -preserveDN -config "$authorities/ca.cnf" \
        -cert "$authorities/$3.crt" -keyfile "$authorities/$3.key" \
        -startdate 20240101000000Z -enddate "$(date -u -d '7 days ago' +%Y%m%d%H%M%SZ)" \
        -in "$authorities/request" -out "$authorities/leaf" 2>/dev/null
    cat "$authorities/leaf" >"$1"
}

pki=/etc/kubernetes/pki
for name in apiserver apiserver-kubelet-client; do
    again "$pki/$name.crt" "$pki/$name.key" ca
done
again "$pki/front-proxy-client.crt" "$pki/front-proxy-client.key" front-proxy-ca
again "$pki/apiserver-etcd-client.crt" "$pki/apiserver-etcd-client.key" etcd-ca
for name in server peer healthcheck-client; do
    again "/etc/etcd/pki/$name.crt" "/etc/etcd/pki/$name.key" etcd-ca
done
for name in admin controller-manager scheduler; do
    file=/etc/kubernetes/$name.conf
    sed -n 's/^ *client-certificate-data: //p' "$file" | base64 -d >"$authorities/client.crt"
    sed -n 's/^ *client-key-data: //p' "$file" | base64 -d >"$authorities/client.key"
    again "$authorities/client.crt" "$authorities/client.key" ca
    sed -i "s|^\( *client-certificate-data: \).*|\1$(base64 -w0 "$authorities/client.crt")|" "$file"
done
