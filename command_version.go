package egret

import (
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// showVersion gives a program the flag --version, unless a parameter has the name.
func showVersion(root *cobra.Command) {
	if root.Flags().Lookup("version") != nil || root.DisableFlagParsing {
		return
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		root.Version = version(info)
		root.Flags().Bool("version", false, "print of which versions the program is built")
		root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	}
}

// version says of which module, and with which Egret and Go, a program is built.
func version(info *debug.BuildInfo) string {
	parts := []string{info.Main.Path + " " + info.Main.Version}
	if info.Main.Path == "" { // built from single files
		parts[0] = "without a module"
	}
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	// A version that was made up of a revision says which.
	if r := set["vcs.revision"]; r != "" && info.Main.Version == "(devel)" {
		r = "revision " + r[:min(len(r), 12)]
		if set["vcs.modified"] == "true" {
			r += " with changes"
		}
		parts = append(parts, r)
	}
	for _, d := range info.Deps {
		if d.Path == "github.com/egretstream/egret" {
			if d.Replace != nil {
				d = d.Replace
			}
			parts = append(parts, "egret "+d.Version)
		}
	}
	return strings.TrimSpace(strings.Join(append(parts, info.GoVersion), ", "))
}
