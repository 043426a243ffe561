package waithook

// WhyLooked is why a receipt that did not wait has no message.
const WhyLooked = "looked"

// MailboxCondition is the text of the condition that waits for a message of a mailbox, as lua/lib/condition.lua reads it.
func MailboxCondition(mailbox string) string { return "M\x1f" + mailbox }
