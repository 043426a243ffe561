package store

import "strconv"

// AppendCommand appends a command as clients send it: an array of texts (RESP,
// https://valkey.io/topics/protocol).
func AppendCommand(to []byte, args ...string) []byte {
	to = append(to, '*')
	to = strconv.AppendInt(to, int64(len(args)), 10)
	to = append(to, "\r\n"...)
	for _, a := range args {
		to = append(to, '$')
		to = strconv.AppendInt(to, int64(len(a)), 10)
		to = append(to, "\r\n"...)
		to = append(to, a...)
		to = append(to, "\r\n"...)
	}
	return to
}
