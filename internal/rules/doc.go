// Package rules is the language in which a room says whose requests do not
// have to wait: assets, health checks, webhooks, an office.
//
//	starts_with(http.request.uri.path, "/assets/") and http.request.method in {"GET" "HEAD"}
//	ip.src in {192.0.2.0/24 2001:db8::/32} or ip.src in $office
//
// It is Cloudflare's language of rules as far as waiting rooms need it: their
// names of fields, functions and operators, so that an expression written there
// can be taken over as it is. docs/rules.md lists all of it.
//
// # What a rule may cost
//
// A rule is asked on every request, about text that strangers chose. The parser
// is expr-lang's; what it has read is checked node by node and made into Go
// closures, and what the checker does not know cannot run. So there are no
// loops, no variables and no arithmetic. Patterns are constants and RE2, which
// takes linear time. Sizes are bounded: of an expression, of a pattern, of the
// text that is compared.
//
// # What is not known is not met
//
// Evaluation has three values. What a request does not tell for certain, such
// as the country where no trusted proxy names one, is unknown, and so is each
// comparison with it and the opposite of that. A rule is met only when it is
// true: in doubt a request waits. The same holds for paths that servers read in
// different ways, see Path, and for a rule that breaks.
package rules

// Bounds of one expression and of one room's rules.
const (
	expressionMax = 4096 // bytes
	patternMax    = 256  // bytes of a regular expression
	textMax       = 8192 // bytes of what is compared; longer texts are unknown
	RulesMax      = 50   // of one room
	ItemsMax      = 2000 // addresses and ranges of one list
)
