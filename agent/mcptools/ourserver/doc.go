// Package ourserver has the tests of agents whose tools come from the MCP server of this project. It is a module of its
// own, so that users of neither get the other.
package ourserver
