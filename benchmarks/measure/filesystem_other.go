//go:build !linux

package measure

// FileSystem is the type of the file system that holds a directory, which only Linux tells here.
func FileSystem(string) string { return "" }
