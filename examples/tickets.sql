-- Setup of a trial for `sqlstress exec --setup`: a table of tickets, which must have different numbers.
CREATE TABLE ticket (number INTEGER NOT NULL);
