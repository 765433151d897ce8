-- Holds the number of a migration of another branch; it goes when that one comes.
SELECT 1;
