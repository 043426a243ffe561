package operations

// Rows is how many operations the table has.
var Rows = len(rows)
