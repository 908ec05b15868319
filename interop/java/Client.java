import static io.modelcontextprotocol.spec.McpSchema.CallToolRequest;
import static io.modelcontextprotocol.spec.McpSchema.ClientCapabilities;
import static io.modelcontextprotocol.spec.McpSchema.ElicitResult;

import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.transport.HttpClientSseClientTransport;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import tools.jackson.databind.json.JsonMapper;

/**
 * Calls a tool over HTTP+SSE with the Java SDK, and fills in the forms that it is
 * asked to: BASE ENDPOINT TOOL ARGUMENTS CONTENT, the last two as JSON objects.
 * Prints what it was told and asked as one JSON object.
 */
public final class Client {
    private static final JsonMapper JSON = JsonMapper.builder().build();

    public static void main(String[] args) {
        List<Map<String, Object>> asked = new ArrayList<>();
        var transport = HttpClientSseClientTransport.builder(args[0]).sseEndpoint(args[1]).build();
        var client = McpClient.sync(transport)
                .requestTimeout(Duration.ofSeconds(60))
                .capabilities(ClientCapabilities.builder().elicitation().build())
                .elicitation(form -> {
                    asked.add(Map.of("message", form.message(), "requestedSchema", form.requestedSchema()));
                    return ElicitResult.builder(ElicitResult.Action.ACCEPT).content(object(args[4])).build();
                })
                .build();
        Map<String, Object> told = new LinkedHashMap<>();
        try (client) {
            told.put("protocolVersion", client.initialize().protocolVersion());
            told.put("result", client.callTool(CallToolRequest.builder(args[2]).arguments(object(args[3])).build()));
            told.put("asked", asked);
        }
        System.out.println(JSON.writeValueAsString(told));
        System.exit(0); // the HTTP client's threads would go on for a while
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> object(String json) {
        return JSON.readValue(json, Map.class);
    }
}
