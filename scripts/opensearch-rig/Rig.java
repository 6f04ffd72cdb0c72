import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import org.opensearch.analysis.common.CommonAnalysisPlugin;
import org.opensearch.common.settings.Settings;
import org.opensearch.core.common.transport.TransportAddress;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.index.mapper.MapperExtrasPlugin;
import org.opensearch.index.reindex.ReindexPlugin;
import org.opensearch.knn.plugin.KNNPlugin;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.painless.PainlessPlugin;
import org.opensearch.transport.Netty4Plugin;
import org.opensearch.transport.TransportService;

/**
 * One node of a test cluster: java Rig.java FOLDER NAME. The nodes of a cluster share FOLDER, find
 * each other by FOLDER/config/unicast_hosts.txt, and write the address of their HTTP server to
 * FOLDER/NAME.http once the cluster has three nodes. A node that starts again keeps its ports.
 */
class Rig {
  static class RigNode extends Node {
    RigNode(Settings settings, Path config) {
      super(
          InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), config, () -> "rig"),
          List.of(
              Netty4Plugin.class, CommonAnalysisPlugin.class, PainlessPlugin.class,
              MapperExtrasPlugin.class, ReindexPlugin.class, KNNPlugin.class),
          true);
    }
  }

  public static void main(String[] args) throws Exception {
    Path folder = Path.of(args[0]);
    String name = args[1];
    Path ports = folder.resolve(name + ".ports");
    String[] port = Files.exists(ports) ? Files.readString(ports).split(" ") : new String[] {"0", "0"};
    RigNode node = new RigNode(
        Settings.builder()
            .put("cluster.name", "assay-test")
            .put("node.name", name)
            .put("path.home", folder.resolve(name).toString())
            .put("network.host", "127.0.0.1")
            .put("transport.type", "netty4")
            .put("http.type", "netty4")
            .put("http.port", port[0])
            .put("transport.port", port[1])
            .put("discovery.seed_providers", "file")
            .put("discovery.initial_state_timeout", "0s")
            .putList("cluster.initial_cluster_manager_nodes", "n1", "n2", "n3")
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .put("cluster.max_shards_per_node", 20000)
            .put("action.destructive_requires_name", true)
            .put("knn.algo_param.index_thread_qty", 1)
            .put("node.processors", 2)
            .build(),
        folder.resolve("config"));
    node.start();
    TransportAddress http =
        node.injector().getInstance(HttpServerTransport.class).boundAddress().publishAddress();
    TransportAddress transport =
        node.injector().getInstance(TransportService.class).boundAddress().publishAddress();
    if (port[0].equals("0")) {
      Files.writeString(ports, http.getPort() + " " + transport.getPort());
      Files.writeString(
          folder.resolve("config/unicast_hosts.txt"), transport + "\n",
          StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
    node.client().admin().cluster().prepareHealth()
        .setWaitForNodes("3").setTimeout("10m").execute().actionGet();
    Path written = folder.resolve(name + ".http.new");
    Files.writeString(written, "http://" + http);
    Files.move(written, folder.resolve(name + ".http"), StandardCopyOption.ATOMIC_MOVE);
    Thread.currentThread().join();
  }
}
