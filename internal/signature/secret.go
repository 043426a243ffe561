package signature

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Bounds of secrets, in bytes, and how many of them one endpoint has.
const (
	minStandard, maxStandard = 24, 64
	minPlain, maxPlain       = 16, 1024
	maxSecrets               = 4
)

// Secrets reads the secrets that a configuration refers to: "env:NAME" or "file:PATH", 1..4 of them. White space around
// them is dropped. A secret in the clear is refused, and no error shows one.
func (s Scheme) Secrets(refs []string) ([][]byte, error) {
	if len(refs) == 0 || len(refs) > maxSecrets {
		return nil, fmt.Errorf("secrets has %d entries, want 1..%d", len(refs), maxSecrets)
	}
	list := make([][]byte, len(refs))
	for i, ref := range refs {
		text, err := resolve(ref)
		if err == nil {
			list[i], err = s.secret(strings.TrimSpace(text))
		}
		if err != nil {
			return nil, fmt.Errorf("secrets[%d]: %w", i, err)
		}
	}
	return list, nil
}

func resolve(ref string) (string, error) {
	if name, ok := strings.CutPrefix(ref, "env:"); ok {
		text, set := os.LookupEnv(name)
		if !set {
			return "", fmt.Errorf("the environment variable %q is not set", name)
		}
		return text, nil
	}
	if name, ok := strings.CutPrefix(ref, "file:"); ok {
		text, err := os.ReadFile(name)
		return string(text), err
	}
	return "", errors.New("want env:NAME or file:PATH: a secret does not belong into this file")
}

func standardSecret(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(text, "whsec_")
	if !ok {
		return nil, errors.New(`the secret does not begin with "whsec_"`)
	}
	secret, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
	if err != nil {
		return nil, errors.New(`the secret is no base64 behind "whsec_"`)
	}
	return secret, sized(len(secret), minStandard, maxStandard)
}

func plainSecret(text string) ([]byte, error) {
	return []byte(text), sized(len(text), minPlain, maxPlain)
}

func sized(n, least, most int) error {
	if n < least || n > most {
		return fmt.Errorf("the secret has %d bytes, want %d..%d", n, least, most)
	}
	return nil
}
