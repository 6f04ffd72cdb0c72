package ui

// askRoutes are about asking questions.
func askRoutes() []Route {
	return []Route{
		page("/{$}", "ask", "Begin", showAsk),
	}
}

func showAsk(q *request) error {
	return q.render("ask.html", q.view("Ask", "Ask", nil))
}
