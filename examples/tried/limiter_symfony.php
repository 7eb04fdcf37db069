<?php // symfony/rate-limiter 5.4.53 with a lock, and a cache in SQLite: at most 20 calls pass in an hour.
require "/usr/share/php/Symfony/Component/RateLimiter/autoload.php";
require "/usr/share/php/Symfony/Component/Lock/autoload.php";
require "/usr/share/php/Symfony/Component/Cache/autoload.php";
use Symfony\Component\Cache\Adapter\PdoAdapter;
use Symfony\Component\Lock\{LockFactory, Store\PdoStore};
use Symfony\Component\RateLimiter\{RateLimiterFactory, Storage\CacheStorage};

$path = getenv("SQLSTRESS_DATABASE");
$cache = new PdoAdapter("sqlite:$path");
$locks = in_array("locked", $argv) ? new LockFactory(new PdoStore("sqlite:$path")) : null;
if (in_array("setup", $argv)) { $cache->createTable(); (new PdoStore("sqlite:$path"))->createTable(); exit; }
$rule = ["id" => "api", "policy" => "fixed_window", "limit" => 20, "interval" => "1 hour"];
$limiters = new RateLimiterFactory($rule, new CacheStorage($cache), $locks);
while (($line = fgets(STDIN)) !== false) {
    try {
        // The client changes after every hundred lines, so that limits are reached often.
        $client = "c" . intdiv((int) $line, 100);
        if ($limiters->create($client)->consume()->isAccepted()) {
            file_put_contents("$path.passed", "$client\n", FILE_APPEND);
        }
        echo "ok\n";
    } catch (Throwable $error) { echo "error ", get_class($error), " ", strtr($error->getMessage(), "\n", " "), "\n"; }
}
