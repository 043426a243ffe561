package handler

// ErrorText is what the logging middleware says of an error.
var ErrorText = errorText
