// Package origin is for the site behind a waiting room: it checks that who
// asks has been let in. A program that serves the site imports it:
//
//	passes, err := origin.New(origin.Config{
//		Room: "shop",
//		JWKS: "http://127.0.0.1:8080/_anteroom/.well-known/jwks.json",
//	})
//	…
//	http.Handle("/", passes.Require(shop))
//	http.HandleFunc("/checkout", func(w http.ResponseWriter, r *http.Request) {
//		origin.End(w) // the visit is over, its slot is free at once
//		…
//	})
//
// An origin that only the gateway can reach needs none of this. One that
// others reach as well, because it is on the internet or behind another proxy,
// does.
//
// # What is checked
//
// The gateway sends a pass along with each request, in the header
// X-Anteroom-Pass: a JWT, signed with ES256 by a key of the cluster. It is good
// if the signature is, iss and aud are the cluster's and the room's, and now is
// between nbf and exp, give or take Config.Leeway. No other algorithm is taken,
// whatever the pass says of itself.
//
// A pass says that its bearer was let in, and until when. A session that ended
// early keeps its pass until exp: only the gateway knows of that.
//
// # Keys
//
// The public keys are fetched from a node when first needed, looked at again
// now and then, and when a pass names one that is not known. Strangers can name
// keys as they please, so that happens at most once in Config.Every. While no
// node answers the keys that are known go on working, for Config.Keep.
//
// # Requests without a pass
//
// A request that a bypass rule lets through has no pass, and neither has any in
// a suspended room. Wrap such paths with Accept instead of Require, or not at
// all. Config.Gateway makes Require send browsers to the waiting room rather
// than refuse them. Leave it empty where the gateway lets requests through
// without a pass to a handler that Require guards: such a browser would be sent
// to and fro.
package origin
