package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print which version this is",
		Args:  noCommand,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(p.stdout, thisVersion())
			return err
		},
	}
}

func thisVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return version(info)
}

// version names the module version, the commit and what it was built with.
func version(info *debug.BuildInfo) string {
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "development"
	}
	commit := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = ", commit " + s.Value[:min(12, len(s.Value))] + commit
		case s.Key == "vcs.modified" && s.Value == "true":
			commit += " with changes"
		}
	}
	return fmt.Sprintf("anteroom %s%s, %s %s/%s", v, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
