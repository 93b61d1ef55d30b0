// Package e2e has tests only: people with a real browser (Chromium) in front of
// the waiting page. They run when ANTEROOM_E2E is set, need chromium in the
// PATH and axe-core from npm:
//
//	npm ci --prefix internal/e2e
//	ANTEROOM_E2E=1 go test ./internal/e2e -screenshots /tmp/pages
//
// ANTEROOM_AXE names axe.min.js where it lies elsewhere.
//
// The journeys go through the real program, a demo of three nodes. What a
// healthy cluster never shows (pauses, restarts, dead nodes) comes from a line
// of a hundred lines behind the real page.
package e2e
