# What docs/install.md says, on a machine of its own: install, edit two lines, start
# what the unit starts, browse; then three nodes, and a newer package while people
# wait; then purge. /given has old.deb and new.deb.
set -euo pipefail
fail() {
	echo "FAIL: $*" >&2
	exit 1
}
# Whatever happens, what this started ends with its process namespace.
files() { find /etc /usr /var/lib /lib/systemd -xdev ! -path '/var/lib/dpkg/*' ! -path '/var/lib/man-db/*' ! -name '*.cache' | sort; }
users() { cut -d: -f1 /etc/passwd /etc/group | sort; }
files >/tmp/files.before
users >/tmp/users.before

echo "== install"
dpkg -i /given/old.deb >/tmp/dpkg.log 2>&1 || fail "dpkg: $(cat /tmp/dpkg.log)"
[[ $(stat -c '%U:%G %a' /etc/anteroom/anteroom.yaml) == 'root:anteroom 640' ]] || fail "$(ls -l /etc/anteroom)"
anteroom config check /etc/anteroom/anteroom.yaml
man -w anteroom-rooms-apply >/dev/null || fail 'no manual'

echo "== edit two lines"
mkdir /tmp/site && echo '<h1>my site</h1>' >/tmp/site/index.html
(cd /tmp/site && exec python3 -m http.server 9000 --bind 127.0.0.1 >/tmp/site.log 2>&1) &
sed -i -e 's|origin: http://127.0.0.1:8000|origin: http://127.0.0.1:9000|' -e 's|total_active_users: 200|total_active_users: 2|' /etc/anteroom/anteroom.yaml
said=$(systemd-analyze verify /usr/lib/systemd/system/anteroom.service 2>&1) || fail "systemd-analyze verify: $said"
[[ -z $said ]] || fail "systemd-analyze verify: $said"

# as_unit COMMAND… runs a command as the unit does.
install -d -m 700 -o anteroom -g anteroom /var/lib/anteroom # StateDirectory=
as_unit() { exec setpriv --reuid anteroom --regid anteroom --init-groups --no-new-privs --inh-caps=-all --bounding-set=-all -- "$@"; }
command_of() { sed -n "s/^$1=//p" /usr/lib/systemd/system/anteroom.service; }

echo "== start"
# shellcheck disable=SC2046 # the unit's words
(as_unit $(command_of ExecStartPre)) || fail 'ExecStartPre'
# shellcheck disable=SC2046
(as_unit $(command_of ExecStart) 2>/tmp/node.log) &
node=$!
anteroom status --wait || fail "$(cat /tmp/node.log)"
anteroom healthcheck --ready
for i in 1 2 3; do curl -sS -b /tmp/jar-$i -c /tmp/jar-$i -o /tmp/page-$i http://127.0.0.1:8080/; done
grep -q 'my site' /tmp/page-1 /tmp/page-2 || fail "the site was not served: $(head -c 300 /tmp/page-1)"
grep -q 'my site' /tmp/page-3 && fail 'a third was let in'
grep -qi 'waiting' /tmp/page-3 || fail "no waiting page: $(head -c 300 /tmp/page-3)"
kill $node
wait $node || fail "it ended with $?: $(tail -3 /tmp/node.log)"

echo "== three nodes"
anteroom keys cluster --out /etc/anteroom/cluster.key
chown root:anteroom /etc/anteroom/cluster.key && chmod 640 /etc/anteroom/cluster.key
join=127.0.0.1:7103,127.0.0.1:7203,127.0.0.1:7303
for i in 1 2 3; do
	install -d -m 700 -o anteroom -g anteroom /var/lib/anteroom/$i
	cat >/etc/anteroom/node-$i.yaml <<-END
		node: {id: node-$i, gateway: 127.0.0.1:80${i}0, admin: 127.0.0.1:909$i, peer: 127.0.0.1:7${i}01, grpc: 127.0.0.1:7${i}02, gossip: 127.0.0.1:7${i}03, join: [$join], expect: 3, data: /var/lib/anteroom/$i}
		security: {gossip_key_file: /etc/anteroom/cluster.key}
		rooms:
		  - {name: site, routes: [{host: "*", path: /}], origin: http://127.0.0.1:9000, total_active_users: 20}
	END
	chgrp anteroom /etc/anteroom/node-$i.yaml && chmod 640 /etc/anteroom/node-$i.yaml
done
declare -A nodes
start() {
	(as_unit anteroom serve --config /etc/anteroom/node-$1.yaml 2>>/tmp/node-$1.log) &
	nodes[$1]=$!
}
for i in 1 2 3; do start $i; done
for i in 1 2 3; do anteroom status --admin http://127.0.0.1:909$i --wait >/tmp/status-$i || fail "$(tail -3 /tmp/node-$i.log)"; done

echo "== a newer package while people wait"
anteroom load --url http://127.0.0.1:8010 --url http://127.0.0.1:8020 --url http://127.0.0.1:8030 --room site \
	--users 400 --stay 2s --limit 20 --connections 200 --json >/tmp/load.json 2>/tmp/load.log &
load=$!
sleep 3
before=$(anteroom version)
dpkg -i /given/new.deb >/tmp/dpkg.log 2>&1 || fail "dpkg: $(cat /tmp/dpkg.log)"
[[ $(anteroom version) != "$before" ]] || fail 'the version is the same'
grep -q 'origin: http://127.0.0.1:9000' /etc/anteroom/anteroom.yaml || fail 'the two lines are gone'
for i in 1 2 3; do
	kill -0 $load 2>/dev/null || fail "nobody waits any more, and node $i has not been upgraded: too small a crowd"
	kill "${nodes[$i]}"
	wait "${nodes[$i]}" || fail "node $i ended with $?: $(tail -3 /tmp/node-$i.log)"
	start $i
	anteroom status --admin http://127.0.0.1:909$i --wait >/tmp/status-$i || fail "$(tail -3 /tmp/node-$i.log)"
done
wait $load || fail "load: $(cat /tmp/load.log)"
cat /tmp/load.json
for i in 1 2 3; do
	kill "${nodes[$i]}"
	wait "${nodes[$i]}" || true
done

echo "== purge"
dpkg --purge anteroom >/tmp/dpkg.log 2>&1 || fail "dpkg: $(cat /tmp/dpkg.log)"
files >/tmp/files.after
users >/tmp/users.after
diff /tmp/files.before /tmp/files.after || fail 'files are left'
diff /tmp/users.before /tmp/users.after || fail 'users are left'
