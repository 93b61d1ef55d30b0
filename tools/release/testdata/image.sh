# image.sh IMAGE runs what is in the image as three nodes of one cluster: each with a root
# that cannot be written to, as the image's user, without any capability. One is killed
# and comes back. It takes root, and "unshare --mount --net --pid --fork" around it.
set -euo pipefail
image=$1
disk=$(mktemp -d)
mount -t proc proc /proc
mount -t tmpfs tmpfs "$disk"
PATH=$PATH:/usr/sbin
ip link set lo up
fail() {
	echo "FAIL: $*" >&2
	exit 1
}

"$image/usr/bin/anteroom" keys cluster --out "$disk/cluster.key" >/dev/null
for i in 1 2 3; do
	mkdir "$disk/root-$i" "$disk/etc-$i"
	mount --bind "$image" "$disk/root-$i"
	mount -o remount,bind,ro "$disk/root-$i"
	mount -t tmpfs -o mode=1777 tmpfs "$disk/root-$i/tmp"
	mount -t tmpfs -o mode=700,uid=65532,gid=65532 tmpfs "$disk/root-$i/var/lib/anteroom"
	cat >"$disk/etc-$i/anteroom.yaml" <<-END
		node: {id: node-$i, gateway: 127.0.0.$i:8080, admin: 127.0.0.$i:9090, peer: 127.0.0.$i:7001, grpc: 127.0.0.$i:7002, gossip: 127.0.0.$i:7946, join: [127.0.0.1:7946, 127.0.0.2:7946, 127.0.0.3:7946], expect: 3, data: /var/lib/anteroom}
		security: {gossip_key_file: cluster.key}
		rooms:
		  - {name: site, routes: [{host: "*", path: /}], origin: http://127.0.0.1:9000, total_active_users: 20}
	END
	install -m 400 -o 65532 -g 65532 "$disk/cluster.key" "$disk/etc-$i/cluster.key"
	mount --bind "$disk/etc-$i" "$disk/root-$i/etc/anteroom"
	mount -o remount,bind,ro "$disk/root-$i/etc/anteroom"
done

# within N COMMAND… runs a command in container N, as docker run and docker exec do.
within() {
	local root=$disk/root-$1
	shift
	exec setpriv --inh-caps=-all --bounding-set=-all,+sys_chroot,+setuid,+setgid --no-new-privs -- \
		env -i PATH=/usr/bin:/usr/sbin:/bin:/sbin chroot --userspec=65532:65532 --groups= "$root" "$@"
}
declare -A nodes
start() {
	(within "$1" /usr/bin/anteroom serve --config /etc/anteroom/anteroom.yaml 2>>"$disk/node-$1.log") &
	nodes[$1]=$!
}
admin() { echo "http://127.0.0.$1:9090"; }
# whole waits until each node has seen three in its waves. On a busy machine one misses a
# wave now and then, so what status --wait waited for may not be so any more when it is asked again.
whole() {
	for i in 1 2 3; do
		local tries=20
		until sees_three "$i"; do
			((tries--)) || fail "$1: node $i sees $(cat "$disk/status")"
		done
	done
	echo "$1: three in the waves"
}
sees_three() {
	"$image/usr/bin/anteroom" status --admin "$(admin "$1")" --wait >"$disk/status" || fail "node $1: $(tail -3 "$disk/node-$1.log")"
	"$image/usr/bin/anteroom" status --admin "$(admin "$1")" --json | python3 -c '
import json, sys
members = json.load(sys.stdin)["cluster"]["members"]
sys.exit(sorted(m["name"] for m in members if m["in_wave"]) != ["node-1", "node-2", "node-3"])'
}

for i in 1 2 3; do start $i; done
whole started
for i in 1 2 3; do
	[[ $(grep '^Uid:' /proc/"${nodes[$i]}"/status | xargs) == 'Uid: 65532 65532 65532 65532' ]] || fail "$(grep Uid /proc/"${nodes[$i]}"/status)"
	grep -q '^CapEff:[[:space:]]*0*$' /proc/"${nodes[$i]}"/status || fail "node $i has $(grep Cap /proc/"${nodes[$i]}"/status)"
	(within $i /usr/bin/anteroom healthcheck --admin "$(admin $i)") || fail "node $i is not well"
done
(within 1 /usr/bin/anteroom healthcheck) || fail 'what the image asks for its health says no'
touch "$disk/root-1/usr/bin/written" 2>/dev/null && fail 'its root can be written to'

kill -9 "${nodes[2]}"
wait "${nodes[2]}" || true
(within 2 /usr/bin/anteroom healthcheck --admin "$(admin 2)" 2>/dev/null) && fail 'a killed node is well'
(within 1 /usr/bin/anteroom healthcheck) || fail 'one that was not killed is not well'
start 2
whole 'killed and back'
for i in 1 2 3; do
	kill -TERM "${nodes[$i]}"
	wait "${nodes[$i]}" || fail "node $i ended with $?: $(tail -3 "$disk/node-$i.log")"
done
echo 'stopped by SIGTERM, with status 0'
