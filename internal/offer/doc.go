// Package offer is what a worker can serve, and what is known of the routes of a partition: together they say which
// classes of work it asks for, and whether what it was given is its own.
package offer
