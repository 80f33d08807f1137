-- Categories of shows that users have corrected (guidespace correct); they replace the categories in guides.
CREATE TABLE corrections (
    show_key VARCHAR PRIMARY KEY,
    title VARCHAR NOT NULL,            -- title in the model, or else as entered
    categories VARCHAR[] NOT NULL,     -- labels of the model at that time
    corrected_at TIMESTAMP NOT NULL
);
