# -*- coding: utf-8 -*-
# SPDX-License-Identifier: Apache-2.0
"""What the smoke tests' Pods run, and the codes with which they end."""

from __future__ import annotations

ANSWER = "clusterwright-answers"
SERVER = f"echo {ANSWER} > /www/index.html && exec /bin/busybox httpd -f -p 8080 -h /www"
# How the asking Pods end without an answer.
NO_SERVICE = 10
NO_NAME = 11
# Debian's static busybox crashes in wget; nslookup and nc do not.
RESOLVE = """\
say() { echo "$1" > /dev/termination-log; }
resolve() { /bin/busybox nslookup NAME "$@" 2>/dev/null | /bin/busybox awk '/^Name:/ {n = 1} n && /^Address/ {print $NF; exit}'; }
end=$(($(/bin/busybox date +%s) + SECONDS))
"""
CLIENT = (
    RESOLVE
    + """\
while true; do
  if ! printf 'GET / HTTP/1.0\\r\\n\\r\\n' | /bin/busybox nc -w 2 ADDRESS 80 2>/dev/null | /bin/busybox grep -q ANSWER; then
    say "the Service's address ADDRESS does not answer"
    code=NO_SERVICE
  elif [ "$(resolve)" != ADDRESS ]; then
    say "the name NAME does not resolve"
    code=NO_NAME
  else
    say "answered"
    exit 0
  fi
  [ "$(/bin/busybox date +%s)" -lt "$end" ] || exit $code
  /bin/busybox sleep 0.3
done
"""
)
# Asks the DNS's Pods one by one, not their Service.
WITNESS = (
    RESOLVE
    + """\
while true; do
  for server in SERVERS; do
    [ "$(resolve $server)" = ADDRESS ] && exit 0
  done
  say "the DNS's Pods SERVERS do not answer"
  [ "$(/bin/busybox date +%s)" -lt "$end" ] || exit NO_NAME
  /bin/busybox sleep 0.3
done
"""
)
# Asks for no Service and no Pod but those that every cluster has. Its last line is the result.
WORKER = (
    RESOLVE
    + """\
while true; do
  if ! /bin/busybox timeout 4 /bin/busybox nc -w 2 ADDRESS PORT < /dev/null > /dev/null 2>&1; then
    said="the Service's address ADDRESS (port PORT) does not answer"
    code=NO_SERVICE
  elif [ "$(resolve)" != ADDRESS ]; then
    said="the name NAME does not resolve"
    code=NO_NAME
  else
    said="answered"
    code=0
  fi
  say "$said"
  if [ $code = 0 ] || [ "$(/bin/busybox date +%s)" -ge "$end" ]; then
    say "ended with $code: $said"
    exit $code
  fi
  /bin/busybox sleep 0.3
done
"""
)


def filled(script: str, **values: object) -> str:
    """The script with its words in capitals replaced."""
    constants = {"NO_SERVICE": NO_SERVICE, "NO_NAME": NO_NAME, "ANSWER": ANSWER}
    for word, value in {**constants, **values}.items():
        script = script.replace(word, str(value))
    return script
