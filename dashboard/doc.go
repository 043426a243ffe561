// Package dashboard is the web page on which people see what runs, what waits and why, answer approvals, and act: an
// [http.Handler] that serves its files and passes everything else to the HTTP API, which it speaks to and nothing
// else.
//
//	api, err := httpapi.New(httpapi.Config{Admin: admin.New(c), Authorize: authorize})
//	page, err := dashboard.New(dashboard.Config{API: api})
//	http.Handle("/jobs/", http.StripPrefix("/jobs", page)) // at any path; "flowfabric serve" has it at /
//
// Who may see and do what is the API's decision. A person signs in with a bearer token, or is known to the Authorize
// function of the application that the page is mounted in, for example by its session cookie. What somebody may not
// do is not shown, and is refused by the API anyway. Every change has its actor and its reason in the history and in
// the audit trail.
//
// The page consists of the files in the folder assets, as they are: nothing is built. It makes no request to any
// other host, and its content security policy allows none. What programs have stored is shown as text only.
package dashboard
