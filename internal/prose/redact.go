package prose

import "regexp"

// secrets are what must never be printed, whatever message it got into: what stands before the @ of a URL, or of an
// address without a scheme; what stands in the place of a port and is none; a URL's parameters (where some drivers
// take passwords); and the secret parts of tokens and token keys, cut short or without a key id too.
var secrets = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`([a-z]+://)[^"'\n]*@`), "${1}…@"},
	{regexp.MustCompile(`([a-z]+://)[^\s"'@/]*:[^\s"'@/]*[^\s"'@/0-9,)][^\s"'@/]*`), "${1}…"},
	{regexp.MustCompile(`[^\s"'{}#@/:]+:[^\s"'{}#@]+@`), "…@"},
	{regexp.MustCompile(`\?[^\s"'?]*=[^\s"']*`), "?…"},
	{regexp.MustCompile(`([A-Za-z0-9._-]{1,32}:)[0-9a-fA-F]{8,}`), "${1}…"},
	{regexp.MustCompile(`[0-9a-fA-F]{32,}`), "…"},
}

// Redact takes those secrets out of a text.
func Redact(text string) string {
	for _, s := range secrets {
		text = s.pattern.ReplaceAllString(text, s.with)
	}
	return text
}

// Message is the text of an error without secrets, "" for none.
func Message(err error) string {
	if err == nil {
		return ""
	}
	return Redact(err.Error())
}
