package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// about says which program this is.
type about struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // beside what the commit has
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func (p *program) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print which version this is",
		Args:  noCommand,
		RunE: func(*cobra.Command, []string) error {
			a := thisProgram()
			if asJSON {
				return json.NewEncoder(p.stdout).Encode(a)
			}
			_, err := fmt.Fprintln(p.stdout, a)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func thisVersion() string { return thisProgram().String() }

func thisProgram() about {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return aboutOf(info)
}

// aboutOf is what the go command has put down in info, and what it was built with.
func aboutOf(info *debug.BuildInfo) about {
	a := about{Version: info.Main.Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if a.Version == "" || a.Version == "(devel)" {
		a.Version = "development"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			a.Commit = s.Value
		case "vcs.modified":
			a.Modified = s.Value == "true"
		}
	}
	return a
}

func (a about) String() string {
	commit := ""
	if a.Commit != "" {
		commit = ", commit " + a.Commit[:min(12, len(a.Commit))]
	}
	if a.Modified {
		commit += " with changes"
	}
	return fmt.Sprintf("anteroom %s%s, %s %s/%s", a.Version, commit, a.Go, a.OS, a.Arch)
}
