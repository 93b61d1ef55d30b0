package config

import (
	"slices"
	"strings"

	"github.com/anteroom/anteroom/internal/rules"
)

const (
	listPattern    = `^[a-z0-9_]{1,50}$`            // as Cloudflare names its lists
	headerPattern  = `^[A-Za-z0-9!#$%&'*+.^_|~-]+$` // RFC 9110
	descriptionMax = 200
)

func (f *File) checkCountryHeader() {
	if h := f.Config.CountryHeader; h != "" && !matches(headerPattern, h) {
		f.fault("country_header", "%q is no name of a header; give one that your proxy sets, such as CF-IPCountry", h)
	}
}

// checkRules checks the rules of a room and the lists that they ask for.
func (f *File) checkRules(key string, r Room) {
	lists := f.checkLists(key, r)
	if n := len(r.BypassRules); n > rules.RulesMax {
		f.fault(key+".bypass_rules", "%d rules; give at most %d, for each is asked on every request. Several can be one, with or", n, rules.RulesMax)
		return
	}
	if r.SearchEngines && lists[rules.SearchEngines] == nil {
		f.fault(key+".search_engine_crawler_bypass", "needs the addresses of the search engines, since anybody can call themselves Googlebot; "+
			"give them in ip_lists as %s, or false", rules.SearchEngines)
	}
	for i, b := range r.BypassRules {
		at := key + ".bypass_rules" + index(i)
		if f.unread[at] {
			continue
		}
		if b.Action != rules.Bypass {
			f.fault(at+".action", "%q; give %s, the only one, or leave it out", b.Action, rules.Bypass)
		}
		if len(b.Description) > descriptionMax {
			f.fault(at+".description", "%d bytes; give at most %d", len(b.Description), descriptionMax)
		}
		if !f.given(at+".expression") && !f.blamed(at) {
			f.fault(at+".expression", `missing; say who need not wait, such as starts_with(http.request.uri.path, "/assets/")`)
			continue
		}
		if f.blamed(at + ".expression") {
			continue
		}
		if _, err := rules.Parse(b.Expression, lists); err != nil {
			f.fault(at+".expression", "%v", err)
		}
		if f.Config.CountryHeader == "" && matches(`\bcountry\b`, b.Expression) {
			f.warn(at+".expression", "asks for a country, and no country_header says where a visitor is, so that it is never met; "+
				"name the header in which your proxy writes it, such as CF-IPCountry")
		}
	}
}

func (f *File) checkLists(key string, r Room) rules.Lists {
	lists := rules.Lists{}
	for i, l := range r.IPLists {
		at := key + ".ip_lists" + index(i)
		if f.unread[at] {
			continue
		}
		switch {
		case !matches(listPattern, l.Name):
			f.fault(at+".name", "%q; give a name of up to 50 small letters, digits and _, which rules write with a $ before it", l.Name)
		case lists[l.Name] != nil:
			f.fault(at+".name", "%q is the name of another list too; give each its own", l.Name)
		case len(l.Items) == 0:
			f.fault(at+".items", "none; give addresses or ranges, such as [192.0.2.0/24]")
		case len(l.Items) > rules.ItemsMax:
			f.fault(at+".items", "%d; give at most %d, for they go with the room from node to node. Several neighbours can be one range", len(l.Items), rules.ItemsMax)
		}
		for j, text := range l.Items {
			if _, err := rules.ParseItem(text); err != nil && len(l.Items) <= rules.ItemsMax {
				f.fault(at+".items"+index(j), "%v", err)
			}
		}
		list, err := rules.NewList(l.Items)
		if err != nil {
			list = new(rules.List) // told above, and rules may ask for it
		}
		lists[l.Name] = list
	}
	return lists
}

// Rules are the rules of the room as package rules has them, and the lists that
// they ask for.
func (r Room) Rules() (all []rules.Rule, lists map[string][]string) {
	for _, b := range r.BypassRules {
		all = append(all, rules.Rule{Description: b.Description, Expression: b.Expression, Disabled: !b.Enabled})
	}
	if r.SearchEngines {
		all = append(all, rules.Crawlers())
	}
	for _, l := range r.IPLists {
		asked := func(rule rules.Rule) bool { return strings.Contains(rule.Expression, "$"+l.Name) }
		if !slices.ContainsFunc(all, asked) {
			continue
		}
		if lists == nil {
			lists = map[string][]string{}
		}
		lists[l.Name] = l.Items
	}
	return all, lists
}
