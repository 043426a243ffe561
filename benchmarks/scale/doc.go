// Package scale predicts what a store carries, and holds the prediction against the real thing.
//
//	Plan        arithmetic: how much memory, how many primaries, connections and calls so many executions, workers and tails need
//	Simulate    producers, partitions on primaries, workers and their timers in virtual time, from a seed
//	Constants   measures what the arithmetic needs and no other scenario has: connections, subscriptions, fan-out, idle calls
//	Check       measures small scenarios on this machine and prints prediction, measurement and ratio
//
// A primary executes one call at a time. A call takes a fixed time and a time for each item ([Costs]). Everything
// else follows from how many calls there are, and of how many items: that is what the simulation is about. It knows
// nothing of Lua, and no execution fails in it.
package scale
