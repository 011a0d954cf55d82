package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/schema"
)

// version says which program this is.
type version schema.Program

func versionCommand(con *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "print which program this is",
		Long: "version prints the version and commit that the program was built from, and the digest by which\n" +
			"manifests name the program that made them. `ropewalk --version` prints the same.",
		Example: "  ropewalk version\n  ropewalk version --json",
		Args:    exactly(),
		RunE:    func(*cobra.Command, []string) error { return printVersion(con) },
	}
	con.jsonFlag(cmd, oneObject)
	return cmd
}

func printVersion(con *console) error {
	v, err := thisVersion()
	if err != nil {
		return err
	}
	return con.render(v, func(p *terminal.Printer) { p.Line("%s", v) })
}

// thisVersion says which program this is.
func thisVersion() (version, error) {
	info, _ := debug.ReadBuildInfo() // nil in a program that was linked without it
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) (v version, err error) {
	v = version{Version: "(unknown)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info != nil {
		v.Version = cmp.Or(info.Main.Version, v.Version)
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	v.Code, err = codeDigest()
	return v, err
}

// String is the version as one line and the digest as another.
func (v version) String() string {
	text := "ropewalk " + v.Version
	if v.Commit != "" {
		text += ", commit " + v.Commit[:min(12, len(v.Commit))]
		if v.Modified {
			text += " with changes"
		}
	}
	return fmt.Sprintf("%s (%s, %s)\nprogram  %s", text, v.Go, v.Platform, v.Code)
}
