package store

import (
	"math/rand"
	"strings"
)

func oneOf(r *rand.Rand, all ...string) string { return all[r.Intn(len(all))] }

// fill makes a command of a shape.
func fill(r *rand.Rand, shape string, words map[string]func(r *rand.Rand) string) []string {
	args := strings.Fields(shape)
	for i, word := range args {
		if make := words[word]; make != nil {
			args[i] = make(r)
		}
	}
	return args
}
