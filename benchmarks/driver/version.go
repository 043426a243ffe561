package driver

import "runtime/debug"

// ModuleVersion is the version of a module in this program: "(devel)" of one that a directory stands for, or that a
// binary does not tell, as those of tests.
func ModuleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path && m.Replace == nil {
				return m.Version
			}
		}
	}
	return "(devel)"
}
