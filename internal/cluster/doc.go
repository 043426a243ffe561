// Package cluster holds no code, only tests: a cluster of three primaries with replicas, real workers and a client in
// the test's process, and what operations and accidents do to a cluster.
//
//	slot moved key by key, frozen     nothing is written meanwhile, nothing lost, nothing run twice
//	failover on command, under load   the same: the server holds writes back until the replica has them
//	primary killed, under load        what was not replicated is gone; everything else ends, once, and adds up
//	the same, producers only          which acknowledged submits are lost, by what the primary waits for
//	library gone from one node        loaded again on that node, whatever state the others are in
//
// A load submits all the time and follows every execution twice, by its result and by its tail, so that each test
// also shows that subscriptions find the node they have to move to.
package cluster
