# Minion 10.25 with Minion::Backend::SQLite 5.0.7: a job must go to one worker only.
use Mojo::Base -strict;
use Minion;

my $path   = $ENV{SQLSTRESS_DATABASE};
my $minion = Minion->new(SQLite => "sqlite:$path");
$minion->add_task(mail => sub { });
if (@ARGV) { $minion->stats; exit }
my $worker = $minion->worker->register;
$| = 1;
while (my $line = <STDIN>) {
  eval {
    $minion->enqueue('mail');
    if (my $job = $worker->dequeue(0)) {
      open my $notes, '>>', "$path.taken" or die $!;
      print $notes $job->id, "\n";
      close $notes;
    }
    say 'ok'; 1
  } or say 'error ', $@ =~ s/\n/ /gr;
}
