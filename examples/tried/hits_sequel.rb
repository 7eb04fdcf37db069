# Sequel 5.63: with its plugin optimistic_locking no hit is lost; without it some are.
require "sequel"

db = Sequel.sqlite(ENV["SQLSTRESS_DATABASE"], timeout: 30_000)
class Page < Sequel::Model(db[:page])
  plugin :optimistic_locking if ARGV.include?("locked")
end
$stdout.sync = true
while $stdin.gets
  begin
    page = Page[1]
    page.update(hits: page.hits + 1)
    db[:hit].insert
    puts "ok"
  rescue Sequel::NoExistingObject
    retry
  rescue => error
    puts "error #{error.class} #{error.message.tr("\n", " ")}"
  end
end
