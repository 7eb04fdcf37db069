-- no hit is lost
SELECT hits, n FROM page, (SELECT count(*) AS n FROM hit) WHERE n > hits OR hits > n + 4;
