# Sequel 5.63: no hit is lost with its plugin optimistic_locking, but some are lost without it.
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
