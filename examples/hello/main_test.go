package main

// The program ends by itself.
func Example() {
	main()
	// Output:
	// Hello, world! <nil>
}
