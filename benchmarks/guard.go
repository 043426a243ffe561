package main

import (
	"context"
	"errors"
	"io"
)

func guardRatios(_ context.Context, args []string, out, progress io.Writer) error {
	return errors.New("x")
}
