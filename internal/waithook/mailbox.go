package waithook

// WhyLooked is why a receipt that did not wait has no message.
const WhyLooked = "looked"
