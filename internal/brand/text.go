package brand

import (
	"fmt"
	"net/url"
	"regexp"
)

// MessagesMax is how many messages a room may have: everybody who waits gets them all.
const MessagesMax = 10

// Part is some words of a text; with a URL they are a link.
type Part struct{ Text, URL string }

// ParseText reads plain text in which [words](https://example.com) is a link. A
// link leads to http, https or mailto: the waiting page is no place for scripts,
// and a path of the site itself would lead back to it.
func ParseText(text string) ([]Part, error) {
	var parts []Part
	at := 0
	for _, m := range regexp.MustCompile(`\[([^\[\]\n]+)\]\(([^()\s]+)\)`).FindAllStringSubmatchIndex(text, -1) {
		words, to := text[m[2]:m[3]], text[m[4]:m[5]]
		u, err := url.Parse(to)
		switch {
		case err != nil, u.Scheme == "mailto" && u.Opaque == "", u.Scheme != "mailto" && u.Host == "",
			u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto":
			return nil, fmt.Errorf("the link %q leads nowhere; give a whole address such as https://example.com/prices, or mailto:help@example.com", to)
		}
		if m[0] > at {
			parts = append(parts, Part{Text: text[at:m[0]]})
		}
		parts = append(parts, Part{words, to})
		at = m[1]
	}
	if at < len(text) {
		parts = append(parts, Part{Text: text[at:]})
	}
	return parts, nil
}
