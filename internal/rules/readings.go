package rules

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what one path may cost.
const (
	readingsMax    = 64       // paths that it may be read as
	readingsLenMax = 16 << 10 // bytes of all of them
)

// look says what of a decoded path servers may read in different ways: dots, //,
// or something odd. A path of none of these is the same to all.
func look(p string) (dots, double, odd bool) {
	from := 0 // of the segment
	for i := 0; i <= len(p); i++ {
		if i == len(p) || p[i] == '/' {
			switch s := p[from:i]; {
			case s == "." || s == "..":
				dots = true
			case s == "":
				double = double || 0 < i && i < len(p)
			case s[0] == ' ' || s[len(s)-1] == ' ' || s[len(s)-1] == '.': // which some drop
				odd = true
			}
			from = i + 1
			continue
		}
		switch c := p[i]; {
		case c < ' ' || c == 0x7f || c == '\\' || c == ';' || c == '?' || c == '#':
			odd = true
		case c == '%':
			odd = odd || coded(p[i:])
		case c >= utf8.RuneSelf:
			odd = odd || p[i:] != asRead(p[i:]) // once for each byte only of odd paths
			if !odd {
				_, n := utf8.DecodeRuneInString(p[i:])
				i += n - 1
			}
		}
	}
	return dots, double, odd
}

// coded reports whether p begins with a character that a server which decodes
// once more would find: %2f, or %u002f as IIS takes it.
func coded(p string) bool {
	return len(p) > 2 && isHex(p[1]) && isHex(p[2]) || len(p) > 1 && (p[1] == 'u' || p[1] == 'U')
}

// asRead returns the first character's reading, with the rest as it is.
func asRead(p string) string {
	r, n := utf8.DecodeRuneInString(p)
	if narrow := narrowed(r, n); narrow != p[:n] {
		return narrow + p[n:]
	}
	return p
}

// narrowed is what servers that fit characters into an older set make of r, which
// had n bytes.
func narrowed(r rune, n int) string {
	switch {
	case r == utf8.RuneError && n == 1:
		return "/" // not UTF-8, perhaps an overlong one: anything
	case '！' <= r && r <= '～':
		return string(r - '！' + '!')
	case r == '․', r == '。':
		return "."
	case r == '‥':
		return ".."
	case r == '⁄', r == '∕':
		return "/"
	case r == '﹨', r == '∖', r == '⧵':
		return `\`
	}
	return string(r)
}

// Fold is p in the letters of which servers that do not tell capitals from small ones
// take it to be: two paths that one of them takes for the same have the same. Some
// compare capitals, some small letters, and ſ, ı and the sign for Kelvin become others.
func Fold(p string) string {
	i := 0
	for i < len(p) && p[i] < utf8.RuneSelf && (p[i] < 'A' || p[i] > 'Z') {
		i++
	}
	if i == len(p) { // as nearly all are written
		return p
	}
	return strings.Map(func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }, p)
}

// Plain reports whether all servers take the path of u for the same one, but for
// capitals.
func Plain(u *url.URL) bool {
	if u.Path == "" || u.Path[0] != '/' || u.RawPath != "" && encodedSlash(u.RawPath) {
		return false
	}
	dots, double, odd := look(u.Path)
	return !dots && !double && !odd
}

// Readings returns what servers may take the path of u for: as it was written;
// decoded, with a slash that was encoded or with it left so; decoded twice; \ as /; without parameters after
// a semicolon, of a segment or of all; double slashes as one, or as the beginning
// of a host; dots resolved before or after any of these, or not; without spaces and
// dots at the end of a segment, and without control characters, or without tabs
// and line ends alone, or only up to them; and so on, in any order. Whether a server tells capitals from small
// letters is not asked: Fold is for that.
//
// There may be too many: then all is false, and it may be read as any path.
func Readings(u *url.URL) (paths []string, all bool) {
	raw := u.RawPath
	if raw == "" {
		raw = u.EscapedPath()
	}
	paths = append(paths, raw)
	do := readers()
	size := 0
	for i := 0; i < len(paths); i++ {
		if !utf8.ValidString(paths[i]) {
			return nil, false
		}
		size += len(paths[i])
		if size > readingsLenMax {
			return nil, false
		}
		for _, read := range do {
			p := read(paths[i])
			if p == paths[i] || slices.Contains(paths, p) {
				continue
			}
			if paths = append(paths, p); len(paths) > readingsMax {
				return nil, false
			}
		}
	}
	return paths, true
}

// readers are what a server may do to a path, one thing each.
func readers() []func(string) string {
	return []func(string) string{
		decodedOnce, decodedButSlashes,
		func(p string) string { return strings.ReplaceAll(p, `\`, "/") },
		func(p string) string { return eachSegment(p, upTo(";")) },
		upTo(";"), upTo("?"), upTo("#"), upTo("\x00"),
		func(p string) string { return strings.Map(printed, p) }, strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace,
		merged,
		withoutDots,
		withoutHost,
		func(p string) string { return eachSegment(p, func(s string) string { return strings.Trim(s, " ") }) },
		func(p string) string { return eachSegment(p, withoutEnd) },
		asNarrow,
	}
}

func upTo(end string) func(string) string {
	return func(p string) string {
		p, _, _ = strings.Cut(p, end)
		return p
	}
}

func eachSegment(p string, f func(string) string) string {
	segments := strings.Split(p, "/")
	for i, s := range segments {
		segments[i] = f(s)
	}
	return strings.Join(segments, "/")
}

func printed(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}

// withoutEnd is a segment as Windows sees it.
func withoutEnd(s string) string {
	if s == "." || s == ".." {
		return s
	}
	return strings.TrimRight(s, " .")
}

func merged(p string) string {
	for strings.Contains(p, "//") {
		p = strings.ReplaceAll(p, "//", "/")
	}
	return p
}

// withoutHost is what is left where //host/path is taken for an address without
// its scheme.
func withoutHost(p string) string {
	if !strings.HasPrefix(p, "//") {
		return p
	}
	if i := strings.IndexByte(p[2:], '/'); i >= 0 {
		return p[2+i:]
	}
	return "/"
}

// withoutDots resolves dots as RFC 3986 says, which leaves empty segments.
func withoutDots(p string) string {
	in := strings.Split(p, "/")
	out := in[:0:0]
	for i, s := range in {
		last := i == len(in)-1
		switch {
		case s == ".." && len(out) > 1:
			out = out[:len(out)-1]
			fallthrough
		case s == "." || s == "..":
			if last {
				out = append(out, "")
			}
		default:
			out = append(out, s)
		}
	}
	return strings.Join(out, "/")
}

func asNarrow(p string) string {
	if strings.IndexFunc(p, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return p
	}
	var b strings.Builder
	for _, r := range p {
		b.WriteString(narrowed(r, utf8.RuneLen(r)))
	}
	return b.String()
}

// decodedOnce decodes p once, as %2f and as %u002f. What is no code stays.
func decodedOnce(p string) string {
	if strings.IndexByte(p, '%') < 0 {
		return p
	}
	b := make([]byte, 0, len(p))
	for i := 0; i < len(p); i++ {
		switch {
		case p[i] != '%':
			b = append(b, p[i])
		case i+2 < len(p) && isHex(p[i+1]) && isHex(p[i+2]):
			b = append(b, hex(p[i+1])<<4|hex(p[i+2]))
			i += 2
		case i+5 < len(p) && (p[i+1] == 'u' || p[i+1] == 'U') && isHex(p[i+2]) && isHex(p[i+3]) && isHex(p[i+4]) && isHex(p[i+5]):
			r := rune(hex(p[i+2]))<<12 | rune(hex(p[i+3]))<<8 | rune(hex(p[i+4]))<<4 | rune(hex(p[i+5]))
			b = utf8.AppendRune(b, r)
			i += 5
		default:
			b = append(b, p[i])
		}
	}
	return string(b)
}

func hex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	default:
		return c - 'a' + 10
	}
}

// decodedButSlashes decodes p once, but for its slashes.
func decodedButSlashes(raw string) string {
	if strings.IndexByte(raw, '%') < 0 {
		return raw
	}
	b := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] == '%' && i+2 < len(raw) && isHex(raw[i+1]) && isHex(raw[i+2]) {
			if c := hex(raw[i+1])<<4 | hex(raw[i+2]); c != '/' {
				b = append(b, c)
				i += 2
				continue
			}
		}
		b = append(b, raw[i])
	}
	return string(b)
}

// clean is p without dots and double slashes, and with the slash at its end if it
// has one.
func clean(p string) string {
	c := path.Clean(p)
	if strings.HasSuffix(p, "/") && c != "/" {
		c += "/"
	}
	return c
}
