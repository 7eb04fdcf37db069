INSERT INTO ticket (id, summary, status) VALUES (1, 'a', 'new'), (2, 'b', 'new'), (3, 'c', 'new'), (4, 'd', 'new'), (5, 'e', 'new');
