package ui

// evaluationRoutes are about evaluations and feedback.
func evaluationRoutes() []Route { return nil }
