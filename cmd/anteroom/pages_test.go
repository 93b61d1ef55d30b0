package main

import (
	"os"
	"strings"
	"testing"
)

const pagesConfig = `
node: {id: node-1, data: data}
rooms:
  - {name: shop, total_active_users: 200, message: Tea at four, custom_page_file: wait.html}
  - {name: desk, total_active_users: 5, default_template_language: nl}
`

func TestConfigPreviewPrintsThePage(t *testing.T) {
	inDir(t, map[string]string{
		"a.yaml": pagesConfig, "wait.html": "{{room}} {{state}} {{message}} {{title}}\n", "bad.html": "\n{{#queueAll}}", "odd.html": "x{{nope}}\n",
	})
	tests := []struct {
		args         string
		stdout, errs string // the beginning of each
	}{
		{"--room shop a.yaml", "shop waiting Tea at four You are in line\n", ""},
		{"--room shop --state full --language de a.yaml", "shop full Tea at four Die Warteschlange ist voll\n", ""},
		{"--room desk a.yaml", "<!doctype html>\n<html lang=\"nl\"", ""},
		{"--room shop --state cookies a.yaml", "<!doctype html>", "anteroom config preview: in this state visitors see the built-in page\n"},
		{"wait.html", "shop waiting  You are in line\n", ""},
		{"odd.html", "x\n", "anteroom config preview: warning: odd.html: {{nope}} is no variable, and prints nothing; docs/pages.md lists them\n"},
		{"bad.html", "", "anteroom config preview: bad.html: line 2: the section {{#queueAll}} has no end; add {{/queueAll}} after it\n"},
		{"a.yaml", "", "anteroom config preview: a.yaml: several rooms; give --room and one of shop, desk\n"},
		{"--room x a.yaml", "", "anteroom config preview: a.yaml: no room \"x\"; there is shop, desk\n"},
		{"--state party wait.html", "", "anteroom config preview: --state: \"party\" is no state; give one of waiting, called, paused"},
		{"nope.html", "", "anteroom config preview: open nope.html: no such file or directory; give an HTML file, or a configuration\n"},
	}
	for _, tt := range tests {
		stdout, stderr, code := execute(t, t.Context(), append([]string{"config", "preview"}, strings.Fields(tt.args)...)...)
		if !strings.HasPrefix(stdout, tt.stdout) || tt.stdout == "" && stdout != "" {
			t.Errorf("%s: stdout %.120q, want %q", tt.args, stdout, tt.stdout)
		}
		if !strings.HasPrefix(stderr, tt.errs) || tt.errs == "" && stderr != "" {
			t.Errorf("%s: stderr %q, want %q", tt.args, stderr, tt.errs)
		}
		if bad := tt.stdout == ""; bad != (code != 0) {
			t.Errorf("%s: exit code %d", tt.args, code)
		}
	}
	stdout, _, _ := execute(t, t.Context(), "config", "preview", "--out", "page.html", "wait.html")
	if text, err := os.ReadFile("page.html"); err != nil || string(text) != "shop waiting  You are in line\n" || stdout != "" {
		t.Errorf("--out: %q, %v; stdout %q", text, err, stdout)
	}
}

func TestConfigCheckLooksIntoPages(t *testing.T) {
	inDir(t, map[string]string{"a.yaml": pagesConfig, "wait.html": "a\n{{#queueAll}}\n{{nope}}\n"})
	_, stderr, code := execute(t, t.Context(), "config", "check", "a.yaml")
	want := "a.yaml:4: rooms[0].custom_page_file: line 2: the section {{#queueAll}} has no end; add {{/queueAll}} after it"
	if code != 1 || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, %q; want %q", code, stderr, want)
	}
}
