package config

import "golang.org/x/text/language"

// Languages are those of the built-in waiting page, English first.
func Languages() []string {
	return []string{
		"en", "ar", "cs", "da", "de", "es", "fi", "fr", "he", "it", "ja", "ko", "nb", "nl", "pl", "pt-BR", "sv", "tr", "uk", "zh-CN", "zh-TW",
	}
}

// Speaks reports whether the built-in page has words in a language, or in one that
// is near to it, as pt-BR is to pt-PT.
func Speaks(tag string) bool {
	wanted, err := language.Parse(tag)
	if err != nil {
		return false
	}
	var have []language.Tag
	for _, l := range Languages() {
		have = append(have, language.MustParse(l))
	}
	_, _, sure := language.NewMatcher(have).Match(wanted)
	return sure != language.No
}
