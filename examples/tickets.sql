-- Tickets, each with a number that no other one may have: what `sqlstress exec --setup` makes for each trial.
CREATE TABLE ticket (number INTEGER NOT NULL);
