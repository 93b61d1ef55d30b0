// Package config reads a node's configuration: one YAML file, with the
// environment and flags over it.
//
// Load never stops at the first mistake. It decodes what it can, checks all of
// it, and lists every error with the line it stands on, what is wrong and what
// would be right. Warnings are apart: with them a node runs, but perhaps not as
// its operator thinks.
//
//	f := config.Load("anteroom.yaml", config.Options{Host: host, Environ: os.Environ()})
//	if err := f.Err(); err != nil {
//		return err // one line per mistake
//	}
//	node.Config{Cluster: f.Config.Eviction(), …}
//
// Keys are those of the json tags below, and docs/anteroom.yaml has them all.
// Every key outside rooms has a variable as well: ANTEROOM_ and its path in
// capitals with _ for each dot, such as ANTEROOM_NODE_ID; lists take commas. A
// variable that is empty counts as not set. Flags win over variables, and
// those over the file.
//
// Secrets are of type Secret, which nothing prints.
package config

import (
	"time"

	"github.com/anteroom/anteroom/eviction"
	"github.com/anteroom/anteroom/internal/rules"
)

// Config is a whole file.
type Config struct {
	Node           Node     `json:"node"`
	Cluster        Cluster  `json:"cluster"`
	Security       Security `json:"security"`
	Prefix         string   `json:"prefix"`
	TrustedProxies []string `json:"trusted_proxies"` // prefixes or single addresses, see Proxies
	CountryHeader  string   `json:"country_header"`  // in which they say where a visitor is; empty: they do not
	AdminHosts     []string `json:"admin_hosts"`     // names that the admin port goes by
	Rooms          []Room   `json:"rooms"`
	Queueing       Queueing `json:"queueing"`
	Queues         []Queue  `json:"queues"`
	StatusPage     bool     `json:"status_page"` // the public may look how the origins are

	Notifications          []Notification         `json:"notifications"`
	NotificationThresholds NotificationThresholds `json:"notification_thresholds"`

	Tracing Tracing `json:"tracing"`
	Push    Push    `json:"push"`
}

// None in the place of an address means that nothing listens.
const None = "none"

// Node is what differs between the nodes of a cluster.
type Node struct {
	ID        string   `json:"id"`
	Gateway   string   `json:"gateway"`
	Admin     string   `json:"admin"`
	Peer      string   `json:"peer"`
	GRPC      string   `json:"grpc"` // None: not for programs
	Gossip    string   `json:"gossip"`
	Advertise string   `json:"advertise"` // empty: gossip picks an address of this machine
	Join      []string `json:"join"`
	Expect    int      `json:"expect"`
	Data      Path     `json:"data"` // empty: memory only
}

// Cluster is the same on all nodes, but for Period, see eviction.Config.Fresh.
type Cluster struct {
	Period       Duration `json:"period"`
	Lease        Duration `json:"lease"`
	MaxSkew      Duration `json:"max_skew"`
	ExcludeAfter Duration `json:"exclude_after"`
	Copies       int      `json:"copies"`
}

// Security is keys, certificates and tokens.
type Security struct {
	SigningKeys    Path     `json:"signing_keys"`
	GossipKey      []Secret `json:"gossip_key"`      // base64, one or a list; see GossipKeys
	GossipKeyFile  Path     `json:"gossip_key_file"` // Load reads it into GossipKey
	TLS            TLS      `json:"tls"`
	AdminToken     Secret   `json:"admin_token"`
	AdminPlaintext bool     `json:"admin_plaintext"` // the admin port may be elsewhere than on loopback without TLS
	ChallengeKey   Secret   `json:"challenge_key"`   // of the tokens that a join takes
	Tokens         []Token  `json:"tokens"`
}

// TLS has the certificates that visitors, operators and programs see and the ones
// between nodes.
type TLS struct {
	Gateway KeyPair   `json:"gateway"`
	Admin   KeyPair   `json:"admin"`
	GRPC    KeyPair   `json:"grpc"`
	Peer    MutualTLS `json:"peer"`
}

// KeyPair is PEM files. Both are given, or neither.
type KeyPair struct {
	Cert Path `json:"cert"`
	Key  Path `json:"key"`
}

// MutualTLS is PEM files. All three are given, or none.
type MutualTLS struct {
	CA   Path `json:"ca"`
	Cert Path `json:"cert"`
	Key  Path `json:"key"`
}

// Room is one waiting room. Its keys are Cloudflare's where Cloudflare has one.
type Room struct {
	Name               string   `json:"name"`
	Routes             []Route  `json:"routes"`
	Origin             string   `json:"origin"` // empty: no reverse proxy
	TotalActiveUsers   int      `json:"total_active_users"`
	NewUsersPerMinute  int      `json:"new_users_per_minute"` // 0: no limit
	SessionDuration    Duration `json:"session_duration"`
	SessionRenewal     bool     `json:"session_renewal"`
	SessionMax         Duration `json:"session_max"` // 0: no bound
	QueueingMethod     string   `json:"queueing_method"`
	QueueingStatusCode int      `json:"queueing_status_code"`
	QueueAll           bool     `json:"queue_all"`
	QueueMax           int      `json:"queue_max"`           // at one node
	JoinsPerAddress    int      `json:"joins_per_address"`   // a minute, at one node, as are the next; 0: no bound
	PlacesPerAddress   int      `json:"places_per_address"`  // 0: no bound
	ActivePerAddress   Share    `json:"active_per_address"`  // 0: no bound
	StreamsPerAddress  int      `json:"streams_per_address"` // 0: no bound
	Challenge          string   `json:"challenge"`           // where the token comes from that a join takes; empty: none
	RefreshInterval    Duration `json:"refresh_interval"`
	TicketTTL          Duration `json:"ticket_ttl"`
	ClaimWindow        Duration `json:"claim_window"`
	ClaimsMax          int      `json:"claims_max"`
	Algorithm          string   `json:"algorithm"`
	OnPartition        string   `json:"on_partition"`
	SurvivorAfter      Patience `json:"survivor_after"`
	CookieSuffix       string   `json:"cookie_suffix"` // empty: the room's name
	Language           string   `json:"default_template_language"`
	Message            string   `json:"message"`       // for the people who wait
	Title              string   `json:"title"`         // over the page; empty: the name
	Logo               Path     `json:"logo"`          // a data URL; Load reads a file into one
	Favicon            Path     `json:"favicon"`       // the same
	Accent             string   `json:"accent"`        // #rrggbb; empty: the page's own
	Description        string   `json:"description"`   // what people wait for; see brand.ParseText
	Push               bool     `json:"push"`          // who waits may be told of the call while the page is closed; needs push.contact
	Bookmark           bool     `json:"bookmark"`      // who waits may have a link that finds the place without a cookie
	ConfirmEntry       bool     `json:"confirm_entry"` // who is not looking when called goes in by a button
	Suspended          bool     `json:"suspended"`     // everyone goes straight through

	Messages []Message `json:"messages"` // for the people who wait, each from a time on

	HealthChecks []HealthCheck `json:"health_checks"`
	OnUnhealthy  string        `json:"on_unhealthy"` // what the room does while one of them fails

	Outflow  string   `json:"outflow"` // what decides how many are let in
	Governor Governor `json:"governor"`

	Events []Event `json:"events"`

	BypassRules   []BypassRule `json:"bypass_rules"`
	SearchEngines bool         `json:"search_engine_crawler_bypass"` // needs the list search_engines
	IPLists       []IPList     `json:"ip_lists"`                     // for the rules

	CustomPageHTML   string           `json:"custom_page_html"` // a Mustache template; empty: the built-in page
	CustomPageFile   Path             `json:"custom_page_file"` // Load reads it into CustomPageHTML
	CookieAttributes CookieAttributes `json:"cookie_attributes"`

	OriginCommands []string `json:"enabled_origin_commands"` // in headers of its answers
	AWSAPI         bool     `json:"aws_api"`                 // the requests of AWS' waiting room as well

	Preflight   string   `json:"preflight"` // who answers them
	CORS        CORS     `json:"cors"`
	Upgrades    []string `json:"upgrades"`     // protocols that a connection may be upgraded to
	StrictPaths bool     `json:"strict_paths"` // what servers read in different ways is refused
}

// BypassRule says which requests do not wait. Its keys are Cloudflare's, and so
// is the language of Expression; package rules reads it.
type BypassRule struct {
	Description string `json:"description"`
	Expression  string `json:"expression"`
	Action      string `json:"action"`
	Enabled     bool   `json:"enabled"`
}

// IPList is a list of addresses and ranges: $name in an expression.
type IPList struct {
	Name  string   `json:"name"`
	Items []string `json:"items"`
}

// Route is a part of a site: every path below Path on Host.
type Route struct {
	Host string `json:"host"` // "*": any
	Path string `json:"path"`
}

// Default returns the configuration of an empty file on the machine of that
// name.
func Default(host string) Config {
	c := eviction.Config{}.WithDefaults()
	return Config{
		Node: Node{
			ID:      host,
			Gateway: "0.0.0.0:8080",
			Admin:   "127.0.0.1:9090",
			Peer:    "0.0.0.0:7001",
			GRPC:    "127.0.0.1:7002",
			Gossip:  "0.0.0.0:7946",
		},
		Cluster: Cluster{
			Period:       Duration(c.Period),
			Lease:        Duration(c.Lease),
			MaxSkew:      Duration(c.MaxSkew),
			ExcludeAfter: Duration(c.ExcludeAfter),
			Copies:       1,
		},
		Prefix:   "/_anteroom",
		Queueing: DefaultQueueing(),

		NotificationThresholds: DefaultNotificationThresholds(),

		Tracing: DefaultTracing(),
	}
}

// DefaultRoom returns a room of which the file says nothing. It is not
// complete: name and total_active_users have no default.
func DefaultRoom() Room {
	r := eviction.Room{}.WithDefaults()
	return Room{
		SessionDuration:    Duration(5 * time.Minute),
		SessionRenewal:     true,
		QueueingMethod:     "fifo",
		QueueingStatusCode: 200,
		QueueMax:           r.QueueMax,
		JoinsPerAddress:    600,
		PlacesPerAddress:   1000,
		ActivePerAddress:   ShareAuto,
		StreamsPerAddress:  1000,
		RefreshInterval:    Duration(r.Refresh),
		TicketTTL:          Duration(r.TicketTTL),
		ClaimWindow:        Duration(r.ClaimWindow),
		ClaimsMax:          r.ClaimsMax,
		Algorithm:          "cut",
		OnPartition:        "majority",
		SurvivorAfter:      SurvivorAuto,
		Language:           "en",
		CookieAttributes:   CookieAttributes{SameSite: "auto", Secure: "auto"},
		OriginCommands:     []string{Revoke},
		Preflight:          byGateway,
		CORS:               CORS{Origins: []string{}, Methods: []string{"GET", "HEAD", "POST"}, Headers: []string{}, MaxAge: Duration(10 * time.Minute)},
		Upgrades:           []string{WebSocket},
		OnUnhealthy:        Continue,
		Outflow:            Fixed,
		Governor:           DefaultGovernor(),
	}
}

// Message is one for the people who wait, from a time on.
type Message struct {
	At   Moment `json:"at"`
	Text string `json:"text"`
}

// DefaultRoute returns the whole of every site.
func DefaultRoute() Route { return Route{Host: "*", Path: "/"} }

// DefaultBypassRule returns a rule of which the file says nothing. It is not
// complete: expression has no default.
func DefaultBypassRule() BypassRule { return BypassRule{Action: rules.Bypass, Enabled: true} }
